"""What does privacy cost, alone and composed, and what breaks it?"""
